"""Other people's worlds and agents: one file for each library, loaded only when it is asked for."""
