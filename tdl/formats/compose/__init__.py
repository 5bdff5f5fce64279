"""The reader of Compose files (compose-spec), by stages.

compose_project      files, override files and `extends` to one tree: read, variables put in
                     (compose_variables), merged (compose_overrides)
compose_fields       what becomes of each field: the table
compose_values       short and long forms of values (ports, volumes, times, commands)
compose_service      one service to the words of a `service`
compose_translation  services, networks and the order of their start to statements
"""
