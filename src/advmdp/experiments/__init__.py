"""Experiments: a spec becomes runs, runs are played here or on Ray, a store keeps them, a report shows them.

spec.py       what is to be run: a TOML file, checked field by field
making.py     what the tables of a spec become: worlds, losses, criteria
runs.py       one run: its identity, its learner, and how it is played into its folder
store.py      the folder of an experiment: which runs are finished, failed or under way
engines.py    who plays: processes of this machine
ray_engine.py who plays: a Ray cluster
runner.py     the whole: plan, play, resume, summary
results.py    a store as frames: curves with bands over seeds, tables, comparisons
report.py     a store as one HTML page; findings.py are its sentences, flow_svg.py its pictures, page/ its looks
toml_text.py  a spec as TOML again
wording.py    numbers and counts as people read them
"""
