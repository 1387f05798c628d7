"""The lab: sweeps over the parameters of simulations, and the papers' figures made by them."""
