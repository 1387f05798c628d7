"""Mutation testing: every statement of a protocol deleted in turn. Is it noticed?"""
