"""What the model may call: file = function = the tool's name. To add one: see README.md."""
