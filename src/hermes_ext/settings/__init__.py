"""What people write in YAML: `config.yaml`, `extension.yaml`, a project's `extensions.yaml`."""
