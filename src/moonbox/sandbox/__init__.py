"""The Sandbox: drives a worker and answers its calls from the toolbox."""
