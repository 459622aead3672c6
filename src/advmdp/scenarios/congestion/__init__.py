"""The congestion game: every demand of a network is a learner, and links get slower as others use them.

game.py         the game, its delays, and what was played
making.py       a game from a topology with demands
routers.py      who chooses the routes: learners, measured delays, references
assignment.py   the least possible peak, the best routing for the system, and equilibria
report.py       the game as one page, with the network to step through (page/)
"""

from advmdp.scenarios.congestion.game import Commodity, CongestionGame, Course, LinkDelays, Router
from advmdp.scenarios.congestion.making import congestion_game

__all__ = ["Commodity", "CongestionGame", "Course", "LinkDelays", "Router", "congestion_game"]
