"""Commands of the laboratory, one file each; `sfboost.cli.app` lists them by name."""
