"""What an experiment expects (compiler.plan.expectations), judged from the records of its run."""
