"""Each check as a question that needs no formula, and the symbols that its answer may use."""

QUESTIONS = {
    "stability": "Do the stable features mean the same in every training domain?",
    "kind of stability": "Is it the label given the features that stays, or the features given the label?",
    "informativeness": "Do the stable features tell the class at all?",
    "informativeness bound": "Do they tell as much here as they claim?",
    "calibration": "Can the stable probabilities be taken at their word?",
    "complementarity": "Within a class, are stable and unstable features independent?",
    "feasibility": "Could any class explain what the rows show?",
    "anything to gain": "Do the unstable features have anything to add here?",
    "prior drift": "Are the classes about as frequent as in training?",
    "support": "Do the rows lie where the training rows lay?",
}

SYMBOLS = (
    ("Y", "the class"),
    ("X_S, X_U", "the stable and the unstable features"),
    ("f_S", "the stable predictor's probabilities"),
    ("s", "its informativeness: 0 knows nothing, 1 knows everything"),
    ("p", "chance of so strong a sign if the assumption holds"),
    ("nats", "unit of log loss"),
)
