"""Loop-free episodic MDPs: skeletons, dynamics, policies, occupancy measures, and the tables they are built from."""
