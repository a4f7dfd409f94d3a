// Runs one command: finds the gateway, hands the command what it needs, and turns a refusal into a message and an exit code.

import { type ClientSettings, type RefusedClientSettings, readClientSettings } from '../config/client-settings.ts'
import { type ConfigInputs, readProcess } from '../config/config.ts'
import type { Clock } from '../kernel/clock.ts'
import { builtInProviderIds, providerVariables } from '../providers/registry.ts'
import { createApiClient } from './api-client.ts'
import type { ManagementCall } from './arguments.ts'
import { faultLines } from './command.ts'
import { exitCodes, Refusal, tryTo } from './refusal.ts'
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
    const message = `the gateway cannot be found, because the configuration is wrong:${faultLines(settings.faults)}`
    const attempt = 'correct it, or TOLLGATE_URL=http://HOST:PORT of a running gateway'
    process.stderr.write(new Refusal(exitCodes.failed, message).text(attempt))
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
  const place = definition.isOffline ? `using the data folder ${dataFolder}` : `looking for it at ${url}`
  process.stderr.write(
    `tollgate: the configuration is wrong. A running gateway keeps the last good one; ${place}.${faultLines(shown)}\n`,
  )
}

async function runWith(
  { definition, input, json }: ManagementCall,
  settings: ClientSettings,
  { inputs, clock }: RunCommandOptions,
): Promise<number> {
  const terminal = processTerminal(settings.allowsColor)
  const api = createApiClient(settings)
  const refusal = await tryTo(definition.run({ settings, inputs, api, terminal, clock, json }, input))
  if (!(refusal instanceof Refusal)) return exitCodes.done
  terminal.complain(refusal.text(`tollgate ${definition.words.join(' ')} --help`))
  return refusal.exit
}
