# The strategies, in the order in which programs list them (docs/adding-a-strategy.md). Each strategy has a file
# exec/strategies/NAME.cpp. If it runs on CUDA devices, it also has exec/strategies/NAME.cu.
set(KILOKV_STRATEGIES ordered serial pipelined partitioned prstm lock gpustm kilo local)
