"""What an experiment expects (compiler.plan.parts.expectations), judged by records of its run."""
