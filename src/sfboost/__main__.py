"""`python -m sfboost` is the command `sfboost`."""

from sfboost.cli import main

if __name__ == "__main__":
    main()
