"""The image of agent and coordinator, made without a container engine."""
