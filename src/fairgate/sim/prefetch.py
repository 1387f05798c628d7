"""Nothing, plain: `prefetch.pyx` fetches what the next messages will need into the cache, and that is for C alone."""
