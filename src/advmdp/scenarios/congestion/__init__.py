"""The congestion game: every demand of a network is a learner, and links get slower as others use them.

game.py         the game, and what was played
delays.py       the delay of a link by its flow
matrices.py     demands that change from episode to episode
tntp.py         road networks in the format of transport research
making.py       a game from a topology with demands
routers.py      who chooses the routes: learners, measured delays, references
assignment.py   the least possible peak, the best routing for the system, and equilibria
limits.py       what a hop limit excludes
report.py       the game as one page, with the network to step through (page/)
"""

from advmdp.scenarios.congestion.delays import LinkDelays
from advmdp.scenarios.congestion.game import Commodity, CongestionGame, Course, Router
from advmdp.scenarios.congestion.making import congestion_game
from advmdp.scenarios.congestion.matrices import demands_from_file

__all__ = ["Commodity", "CongestionGame", "Course", "LinkDelays", "Router", "congestion_game", "demands_from_file"]
