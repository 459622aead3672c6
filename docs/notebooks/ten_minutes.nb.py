# %% [markdown]
# # Ten minutes from nothing
#
# Hi $x^2$

# %%
import advmdp as am

am.Skeleton.dense([1, 2, 1], 2)
