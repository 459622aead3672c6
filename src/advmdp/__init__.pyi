from . import losses as losses
from . import plot as plot
from .errors import AdvMDPError as AdvMDPError
from .errors import InputError as InputError
from .errors import ModelError as ModelError
from .expansion import Expansion as Expansion
from .expansion import time_expand as time_expand
from .mdp import MDP as MDP
from .mdp import Trajectory as Trajectory
from .occupancy_measures import Residuals as Residuals
from .occupancy_measures import Values as Values
from .occupancy_measures import best_response as best_response
from .occupancy_measures import expected_losses as expected_losses
from .occupancy_measures import flow_residuals as flow_residuals
from .occupancy_measures import occupancy as occupancy
from .occupancy_measures import policy_of as policy_of
from .occupancy_measures import policy_values as policy_values
from .occupancy_measures import transition_of as transition_of
from .policy import deterministic_policy as deterministic_policy
from .policy import uniform_policy as uniform_policy
from .skeleton import Skeleton as Skeleton

__version__: str
