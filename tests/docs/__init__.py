"""Tests of the documentation: what its pages say to do is done, and what they show is what comes out."""
