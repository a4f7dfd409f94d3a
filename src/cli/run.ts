// Runs one command: finds the gateway, hands the command what it needs, and turns a refusal into a message and an exit code.

import { allBuiltInModels } from '../catalog/data/built-in.ts'
import { readClientSettings } from '../config/client-settings.ts'
import { type ConfigInputs, readProcess } from '../config/config.ts'
import { sections } from '../config/settings.ts'
import type { Clock } from '../kernel/clock.ts'
import { builtInProviderIds, providerVariables } from '../providers/registry.ts'
import { createApiClient } from './api-client.ts'
import type { ManagementCall } from './arguments.ts'
import { type CommandDefinition, faultLines } from './command.ts'
import { type ExitCode, exitCodes, Refusal, tryTo } from './refusal.ts'
import type { Terminal } from './terminal.ts'

export function configInputs(): ConfigInputs {
  return { ...readProcess(), providerVariables, builtInProviderIds, builtInModels: allBuiltInModels }
}

export interface RunOptions {
  readonly inputs: ConfigInputs
  readonly terminal: Terminal
  readonly clock: Clock
}

export async function runCommand({ definition, input }: ManagementCall, options: RunOptions): Promise<ExitCode> {
  const { terminal } = options
  const run = async () => {
    const settings = findGateway(definition, options)
    await definition.run({ ...input, ...options, settings, api: createApiClient(settings) })
  }
  const refusal = await tryTo(run())
  if (!(refusal instanceof Refusal)) return exitCodes.done
  const help = `tollgate ${definition.words.join(' ')} --help`
  terminal.complain(input.json ? refusal.json(help) : refusal.text(help))
  return refusal.exit
}

/**
 * A command about the settings also runs with invalid settings: it reports them itself and gets the default address.
 * Other commands warn about faults, but not about a variable that is only missing in this shell.
 */
function findGateway({ isOffline, isLocal }: CommandDefinition, { inputs, terminal }: RunOptions) {
  const settings = readClientSettings(inputs, isOffline ? 'not called' : 'called')
  if ('faults' in settings) {
    const port = /^[1-9][0-9]{0,4}$/.exec(inputs.env.TOLLGATE_PORT ?? '')?.[0] ?? sections.server.settings.port.default
    const env = { ...inputs.env, TOLLGATE_URL: `http://127.0.0.1:${port}` }
    const otherwise = isLocal ? readClientSettings({ ...inputs, env }) : settings
    if (!('faults' in otherwise)) return otherwise
    const message = `the gateway cannot be found, because the configuration is wrong:${faultLines(otherwise.faults)}`
    const attempt = 'correct it, or TOLLGATE_URL=http://HOST:PORT of a running gateway'
    throw new Refusal(exitCodes.failed, message, attempt)
  }
  const faults = settings.doubts.filter(({ isMissingHere }) => isMissingHere !== true)
  if (faults.length > 0 && !isLocal) {
    const place = isOffline ? `using the data folder ${settings.dataFolder}` : `looking for it at ${settings.url}`
    const what = 'the configuration is wrong. A running gateway keeps the last good one'
    terminal.complain(`tollgate: ${what}; ${place}.${faultLines(faults)}\n`)
  }
  return settings
}
