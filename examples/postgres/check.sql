-- Waits until pgbench's 600 payments are made and two replicas have followed, then compares: where a
-- replica has other payments than the primary, this divides by zero and psql fails.
\set ON_ERROR_STOP on
do $$
declare done boolean := false;
begin
    while not done loop
        perform pg_sleep(0.1);
        if to_regclass('pgbench_history') is not null then
            done := (select count(*) from pgbench_history) = 600 and
                (select count(*) from pg_stat_replication where replay_lsn >= pg_current_wal_lsn()) = 2;
        end if;
        commit;
    end loop;
end $$;
select count(*) as rows, sum(delta) as sum from pgbench_history \gset
\connect - - replica.0
select count(*), sum(delta), 1 / (count(*) = :rows and sum(delta) = :sum)::int as same from pgbench_history;
\connect - - replica.1
select count(*), sum(delta), 1 / (count(*) = :rows and sum(delta) = :sum)::int as same from pgbench_history;
