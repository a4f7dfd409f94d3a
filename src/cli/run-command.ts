// Runs one command over the management API: finds the gateway, hands over what commands need, and turns a refusal into
// words and an exit code.

import { type ClientSettings, type RefusedClientSettings, readClientSettings } from '../config/client-settings.ts'
import type { ConfigInputs } from '../config/config.ts'
import { formatFault } from '../config/fault.ts'
import type { Clock } from '../kernel/clock.ts'
import { createApiClient } from './api-client.ts'
import type { ManagementCall } from './arguments.ts'
import { exitCodes, Refusal, refusalText } from './refusal.ts'
import { processTerminal } from './terminal.ts'

export interface RunCommandOptions {
  readonly inputs: ConfigInputs
  readonly clock: Clock
}

/** Answers with the exit code. */
export async function runCommand(call: ManagementCall, { inputs, clock }: RunCommandOptions): Promise<number> {
  const settings = settingsFor(call, inputs)
  if ('faults' in settings) {
    const lines = settings.faults.map((fault) => `  ${formatFault(fault)}`).join('\n')
    process.stderr.write(`tollgate: the gateway cannot be found, the configuration is wrong:\n${lines}\n`)
    process.stderr.write('Try: mend them, or TOLLGATE_URL=http://HOST:PORT of a gateway that runs\n')
    return exitCodes.failed
  }
  tellDoubts(call, settings)
  return await runWith(call, settings, { inputs, clock })
}

/** A command about the settings gets the address that the gateway would have with its defaults. */
function settingsFor({ definition }: ManagementCall, inputs: ConfigInputs): ClientSettings | RefusedClientSettings {
  const settings = readClientSettings(inputs, definition.isOffline ? 'not called' : 'called')
  if (!('faults' in settings) || !definition.isLocal) return settings
  const port = /^[1-9][0-9]{0,4}$/.exec(inputs.env.TOLLGATE_PORT ?? '')?.[0] ?? '8080'
  return readClientSettings({ ...inputs, env: { ...inputs.env, TOLLGATE_URL: `http://127.0.0.1:${port}` } })
}

/** Commands about the settings tell faults themselves; what only this shell cannot see is no fault of the file. */
function tellDoubts({ definition }: ManagementCall, { doubts, url, dataFolder }: ClientSettings): void {
  const told = doubts.filter(({ isMissingHere }) => isMissingHere !== true)
  if (told.length === 0 || definition.isLocal) return
  const place = definition.isOffline ? `the data folder is taken to be ${dataFolder}` : `it is looked for at ${url}`
  const lines = told.map((fault) => `  ${formatFault(fault)}\n`).join('')
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
