"""What the parity test and the benches share: peers, their installation, workers, comparisons."""
