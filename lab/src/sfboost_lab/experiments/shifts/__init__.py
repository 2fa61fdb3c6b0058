"""The shift suite: what each answer is worth when nothing changed, and when something did.

`suite_domains` (rows) → `kinds` (what happens to the new domain) → `systems` (who answers) → `suite` (plan) →
`results` (numbers of records) → `summary` (tables with their targets).
"""
