"""A data set of pictures as one of a network's features."""

from __future__ import annotations

from dataclasses import replace

from sfboost.datasets.contract import Dataset
from sfboost.datasets.features import EfficientNetFeatures, Progress, extract
from sfboost.datasets.images import ImageSequence


def with_features(
    dataset: Dataset,
    extractor: EfficientNetFeatures | None = None,
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Dataset:
    """Return the data set with features in place of pictures.

    Examples
    --------
    >>> from sfboost_lab.datasets import load
    >>> from sfboost_lab.datasets.picture_features import with_features
    >>> with_features(load("pacs"), n_jobs=2).domain("photo").X.shape  # doctest: +SKIP
    (1670, 1280)
    """
    sizes = [len(domain) for domain in dataset.domains]

    def told(before: int) -> Progress | None:
        return None if progress is None else lambda done, _: progress(before + done, sum(sizes))

    domains = []
    for k, domain in enumerate(dataset.domains):
        if not isinstance(domain.X, ImageSequence):
            raise TypeError(
                f"Domain {domain.name!r} of {dataset.name!r} holds {type(domain.X).__name__}; features are "
                "made from pictures on disk, such as those of pacs or image_folder."
            )
        features = extract(domain.X, extractor, n_jobs=n_jobs, progress=told(sum(sizes[:k])))
        domains.append(replace(domain, X=features))
    return replace(dataset, domains=tuple(domains))
