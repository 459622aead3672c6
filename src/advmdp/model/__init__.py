"""Loop-free episodic MDPs: skeletons, dynamics, policies, occupancy measures, and tables of steps to make them from."""
