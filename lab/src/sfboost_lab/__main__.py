"""`python -m sfboost_lab` is the command `sfboost-lab`."""

from sfboost_lab.commands import main

if __name__ == "__main__":
    main()
