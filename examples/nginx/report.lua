-- For wrk: one line at the end; an answer that is an error, or no answer at all, is a failure.
function done(summary, latency)
    local e = summary.errors
    local bad = e.connect + e.read + e.write + e.status + e.timeout
    print(string.format("%d answers, %d failed, median %.1f ms", summary.requests, bad,
        latency:percentile(50) / 1000))
    os.exit(bad == 0 and summary.requests > 0)
end
