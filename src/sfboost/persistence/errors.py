"""What can go wrong with a saved model, said in a sentence."""


class SavedModelError(ValueError):
    """A model that cannot be saved safely, or a file that is not to be loaded."""


class SavedModelWarning(UserWarning):
    """A file was loaded, and something about it should be known."""
