"""Is each assumption of Theorem 4.4 plausible on these data?"""
