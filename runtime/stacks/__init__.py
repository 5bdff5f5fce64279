"""What the instances' own network stacks dropped, told apart from what the network dropped."""
