-- Waits until pgbench's 600 payments are made. None may be lost or made twice: where the accounts' sum is
-- not that of the history, this divides by zero and psql fails.
\set ON_ERROR_STOP on
do $$
declare done boolean := false;
begin
    while not done loop
        perform pg_sleep(0.1);
        if to_regclass('pgbench_history') is not null then
            done := (select count(*) from pgbench_history) = 600;
        end if;
        commit;
    end loop;
end $$;
select sum(delta), 1 / (sum(delta) = (select sum(abalance) from pgbench_accounts))::int as same
    from pgbench_history;
