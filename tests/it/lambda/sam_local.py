"""Prints which variables of a file `sam local invoke --env-vars` would not give each function of a
template, as a JSON object. It is asked itself, up to where it would start a container."""

import json
import sys

from samcli.commands.local.lib.local_lambda import LocalLambdaRunner
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider

template, env_vars = sys.argv[1:]
with open(env_vars, encoding="utf-8") as file:
    overrides = json.load(file)
stacks, _ = SamLocalStackProvider.get_stacks(template)
functions = SamFunctionProvider(stacks)
runner = LocalLambdaRunner(None, functions, ".", {}, env_vars_values=overrides)
missing = {}
for function in functions.get_all():
    given = runner._make_env_vars(function).resolve()
    wanted = overrides["Parameters"].items()
    missing[function.name] = [name for name, value in wanted if given.get(name) != value]
print(json.dumps(missing))
