"""`expect assertions`: what programs assert of themselves by the SDKs of the field."""
