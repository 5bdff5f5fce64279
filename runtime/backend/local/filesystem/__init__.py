"""The file system that an instance sees."""
