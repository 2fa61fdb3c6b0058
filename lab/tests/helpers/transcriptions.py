"""T3A, Tent and SHOT once more, straight from their papers and published code, with torch's autograd.

Nothing here shares a line with `sfboost_lab.baselines`. Each works on stored features and a linear classifier
of K rows, in float64, online in the order of the rows given.
"""

import numpy as np
import torch
from scipy.spatial.distance import cdist
from torch import nn


def classifier(coef, intercept):
    layer = nn.Linear(coef.shape[1], coef.shape[0]).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(coef))
        layer.bias.copy_(torch.tensor(intercept))
    return layer


def entropy(logits):
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)


def t3a_online(coef, intercept, features, filter_k, batch_size=32):
    """Return the scores of each batch as it comes, and the final templates (d, K)."""
    layer = classifier(coef, intercept)
    with torch.no_grad():
        n_classes = len(coef)
        supports = layer.weight.clone()
        first = layer(supports)
        labels = nn.functional.one_hot(first.argmax(1), n_classes).double()
        uncertainty = entropy(first)
        scores = []
        for z in torch.tensor(features).split(batch_size):
            p = layer(z)
            supports = torch.cat([supports, z])
            labels = torch.cat([labels, nn.functional.one_hot(p.argmax(1), n_classes).double()])
            uncertainty = torch.cat([uncertainty, entropy(p)])
            keep = []
            for k in range(n_classes):
                members = torch.nonzero(labels[:, k] == 1)[:, 0]
                order = uncertainty[members].argsort(stable=True)
                keep.append(members[order][:filter_k])
            keep = torch.cat(keep)
            supports, labels, uncertainty = supports[keep], labels[keep], uncertainty[keep]
            weights = nn.functional.normalize(supports, dim=1).T @ labels
            templates = nn.functional.normalize(weights, dim=0)
            scores.append(z @ templates)
    return torch.cat(scores).numpy(), templates.numpy()


def tent_classifier(coef, intercept, batches, learning_rate):
    """One Adam step on the mean entropy of each batch, over weights and biases of the classifier."""
    layer = classifier(coef, intercept)
    optimizer = torch.optim.Adam(layer.parameters(), lr=learning_rate, betas=(0.9, 0.999))
    for z in batches:
        optimizer.zero_grad()
        entropy(layer(torch.tensor(z))).mean(0).backward()
        optimizer.step()
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def pseudo_label_classifier(coef, intercept, batches, learning_rate, threshold):
    """One Adam step per batch on the cross-entropy with the classifier's own sure predictions."""
    layer = classifier(coef, intercept)
    optimizer = torch.optim.Adam(layer.parameters(), lr=learning_rate)
    for z in batches:
        logits = layer(torch.tensor(z))
        confidence, label = logits.softmax(1).max(1)
        flag = confidence > threshold
        if flag.sum() == 0:
            continue
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits[flag], label[flag]).backward()
        optimizer.step()
    return layer.weight.detach().numpy(), layer.bias.detach().numpy()


def shot_labels(all_fea, all_output):
    """Centroids weighted by probability, cosine distance, then once more with hard labels."""
    predict = all_output.argmax(1)
    all_fea = np.concatenate([all_fea, np.ones((len(all_fea), 1))], axis=1)
    all_fea = (all_fea.T / np.linalg.norm(all_fea, axis=1)).T
    n_classes = all_output.shape[1]
    label_set = np.where(np.eye(n_classes)[predict].sum(axis=0) > 0)[0]
    aff = all_output
    for _ in range(2):
        centroids = aff.T @ all_fea
        centroids = centroids / (1e-8 + aff.sum(axis=0)[:, None])
        label = label_set[cdist(all_fea, centroids[label_set], "cosine").argmin(axis=1)]
        aff = np.eye(n_classes)[label]
    return label


def shot(coef, intercept, features, epochs_of_batches, learning_rate=1e-2, pseudo_weight=0.3):
    """SGD on a bottleneck that begins as the identity; the classifier is frozen."""
    layer = classifier(coef, intercept).requires_grad_(False)
    d = features.shape[1]
    bottleneck = nn.Linear(d, d).double()
    with torch.no_grad():
        bottleneck.weight.copy_(torch.eye(d))
        bottleneck.bias.zero_()
    optimizer = torch.optim.SGD(
        bottleneck.parameters(), lr=learning_rate, momentum=0.9, weight_decay=1e-3, nesterov=True
    )
    z = torch.tensor(features)
    max_iter = sum(len(batches) for batches in epochs_of_batches)
    iteration = 0
    for batches in epochs_of_batches:
        with torch.no_grad():
            moved = bottleneck(z)
            labels = torch.tensor(shot_labels(moved.numpy(), layer(moved).softmax(1).numpy()))
        for rows in batches:
            iteration += 1
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * (1 + 10 * iteration / max_iter) ** -0.75
            outputs = layer(bottleneck(z[rows]))
            loss = pseudo_weight * nn.functional.cross_entropy(outputs, labels[rows])
            softmax_out = outputs.softmax(1)
            loss = loss + (-softmax_out * torch.log(softmax_out + 1e-5)).sum(1).mean()
            mean_out = softmax_out.mean(0)
            loss = loss - (-mean_out * torch.log(mean_out + 1e-5)).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        return layer(bottleneck(z)).numpy()
