"""moonbox.toml: where it is, whether it is trusted, its settings, one reader."""
