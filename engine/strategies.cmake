# The strategies, in the order in which programs list them (docs/adding-a-strategy.md). Each has
# exec/strategies/NAME.cpp, and, if it runs on CUDA devices, exec/strategies/NAME.cu.
set(KILOKV_STRATEGIES ordered serial prstm lock gpustm kilo local)
