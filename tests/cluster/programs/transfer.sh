#!/bin/sh
# Sends to the sink of the same number until it is ended; says the rate of every second.
exec iperf3 -c "sink.$TSTORM_INDEX" -t 60 -i 1 -f k --forceflush
