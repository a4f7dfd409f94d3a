// Runs one command: finds the gateway, hands the command what it needs, and turns a refusal into a message and an exit code.

import { type ClientSettings, type RefusedClientSettings, readClientSettings } from '../config/client-settings.ts'
import { type ConfigInputs, readProcess } from '../config/config.ts'
import { formatFault } from '../config/fault.ts'
import type { Clock } from '../kernel/clock.ts'
import { builtInProviderIds, providerVariables } from '../providers/registry.ts'
import { createApiClient } from './api-client.ts'
import type { ManagementCall } from './arguments.ts'
import { exitCodes, Refusal, refusalText } from './refusal.ts'
import { processTerminal } from './terminal.ts'

export function configInputs(): ConfigInputs {
  return { ...readProcess(), providerVariables, builtInProviderIds }
}

export interface RunCommandOptions {
  readonly inputs: ConfigInputs
  readonly clock: Clock
}

/** Resolves to the exit code. */
export async function runCommand(call: ManagementCall, { inputs, clock }: RunCommandOptions): Promise<number> {
  const settings = settingsFor(call, inputs)
  if ('faults' in settings) {
    const lines = settings.faults.map((fault) => `  ${formatFault(fault)}`).join('\n')
    process.stderr.write(`tollgate: the gateway cannot be found, the configuration is wrong:\n${lines}\n`)
    process.stderr.write('Try: mend them, or TOLLGATE_URL=http://HOST:PORT of a gateway that runs\n')
    return exitCodes.failed
  }
  warnOfFaults(call, settings)
  return await runWith(call, settings, { inputs, clock })
}

/** A command about the settings also runs with wrong settings, and then gets the default address. */
function settingsFor({ definition }: ManagementCall, inputs: ConfigInputs): ClientSettings | RefusedClientSettings {
  const settings = readClientSettings(inputs, definition.isOffline ? 'not called' : 'called')
  if (!('faults' in settings) || !definition.isLocal) return settings
  const port = /^[1-9][0-9]{0,4}$/.exec(inputs.env.TOLLGATE_PORT ?? '')?.[0] ?? '8080'
  return readClientSettings({ ...inputs, env: { ...inputs.env, TOLLGATE_URL: `http://127.0.0.1:${port}` } })
}

/** Commands about the settings report faults themselves. A variable that is only missing in this shell is no fault. */
function warnOfFaults({ definition }: ManagementCall, { doubts, url, dataFolder }: ClientSettings): void {
  const shown = doubts.filter(({ isMissingHere }) => isMissingHere !== true)
  if (shown.length === 0 || definition.isLocal) return
  const place = definition.isOffline ? `the data folder is taken to be ${dataFolder}` : `it is looked for at ${url}`
  const lines = shown.map((fault) => `  ${formatFault(fault)}\n`).join('')
  process.stderr.write(
    `tollgate: the configuration is wrong. A running gateway keeps the last good one; ${place}.\n${lines}`,
  )
}

async function runWith(
  { definition, input, json }: ManagementCall,
  settings: ClientSettings,
  { inputs, clock }: RunCommandOptions,
) {
  const terminal = processTerminal(settings.allowsColor)
  const api = createApiClient(settings)
  const refusal = await definition.run({ settings, inputs, api, terminal, clock, json }, input)
  if (!(refusal instanceof Refusal)) return exitCodes.done
  terminal.complain(refusalText(refusal, `tollgate ${definition.words.join(' ')} --help`))
  return refusal.exit
}
