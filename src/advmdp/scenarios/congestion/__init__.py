"""The congestion game: each demand of a network is a learner, and links slow down under load.

game.py         the game
playing.py      one play of it with each method, and the results
delays.py       the delay of a link as a function of its flow
matrices.py     demands that change from episode to episode
tntp.py         reads road networks in TNTP, the format of transport research
making.py       makes a game from a topology with demands
routers.py      methods that choose routes: learners, delay-based routing, references
assignment.py   the least possible peak load, the system optimum, and equilibria
limits.py       how much delay a hop limit adds
report.py       an HTML report that shows the network episode by episode (page/)
"""

from advmdp.scenarios.congestion.delays import LinkDelays
from advmdp.scenarios.congestion.game import Commodity, CongestionGame
from advmdp.scenarios.congestion.making import congestion_game
from advmdp.scenarios.congestion.matrices import demands_from_file
from advmdp.scenarios.congestion.playing import Course, Router

__all__ = ["Commodity", "CongestionGame", "Course", "LinkDelays", "Router", "congestion_game", "demands_from_file"]
