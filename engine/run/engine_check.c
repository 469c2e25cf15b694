/* Looks at the settings of an engine as its start does, for `sagad --check-config`. In a file of its own, because it
 * alone needs libpq: the simulator has another store. */
#include "io/postgres/environment.h"
#include "run/call/budgets.h"
#include "run/call/secrets.h"
#include "run/engine.h"
#include "run/intake/quotas.h"
#include "run/notify/targets.h"

enum err_code engine_check(const struct engine_options *options, struct err *err)
{
    struct secrets secrets = {0};
    struct quotas quotas = {0};
    struct budgets budgets = {0};
    struct notify_targets targets = {0};
    enum err_code code = secrets_load(&secrets, options->secrets_file, err);

    code = code == ERR_OK ? quotas_load(&quotas, options->quotas_file, err) : code;
    code = code == ERR_OK ? budgets_load(&budgets, options->budgets_file, err) : code;
    code = code == ERR_OK ? notify_targets_load(&targets, options->notify_file, err) : code;
    code = code == ERR_OK ? notify_targets_check(&targets, &secrets, err) : code;
    code = code == ERR_OK ? db_dsn_check(options->dsn ? options->dsn : "", err) : code;
    code = code == ERR_OK ? trace_target_check(&options->traces, err) : code;
    notify_targets_fini(&targets);
    budgets_fini(&budgets);
    quotas_fini(&quotas);
    secrets_fini(&secrets);
    return code;
}
