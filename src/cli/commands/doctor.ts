// `tollgate doctor`: looks at everything a gateway needs and says what to do about what is wrong. It changes nothing,
// generates nothing, shows no secret, and works with and without a running gateway.

import { relative } from 'node:path'
import { type Config, loadConfig } from '../../config/config.ts'
import { type ConfigFault, formatFault } from '../../config/fault.ts'
import { type CommandContext, type CommandDefinition, printJson } from '../command.ts'
import { checkGateway } from '../doctor/check-gateway.ts'
import { checkClock, checkProxy, checkVersion } from '../doctor/check-machine.ts'
import { checkLocalServers, checkProviders } from '../doctor/check-providers.ts'
import { checkDatabase, checkDataFolder } from '../doctor/check-store.ts'
import { type Finding, isWrong, note, ok, renderFindings, wrong } from '../doctor/finding.ts'
import { readMasterSecrets } from '../master-secrets.ts'
import { exitCodes, Refusal } from '../refusal.ts'

export const doctorCommand: CommandDefinition = {
  words: ['doctor'],
  isLocal: true,
  summary: 'checks settings, data, database, clock, port, provider keys and what a client would see',
  details: `Each line ends in "ok" or in what to do; ends with 1 if something is wrong. Provider keys are tried with a call that
generates nothing and costs nothing; --offline leaves those out. No key is shown.`,
  options: { offline: { help: 'asks no provider' } },
  examples: ['tollgate doctor', 'tollgate doctor --json'],
  async run(context, input) {
    const findings = await examine(context, input.isSet('offline'))
    const isFine = !findings.some(isWrong)
    if (context.json) printJson(context, { ok: isFine, findings })
    else context.terminal.print(renderFindings(findings, context.terminal))
    return isFine
      ? undefined
      : new Refusal(
          exitCodes.failed,
          'something is wrong.',
          'what stands behind the arrows, then tollgate doctor again',
        )
  },
}

async function examine(context: CommandContext, isOffline: boolean): Promise<readonly Finding[]> {
  const { inputs, settings, clock } = context
  const loaded = loadConfig(inputs)
  const config = 'faults' in loaded ? undefined : loaded.config
  const [store, providers, local, gateway] = await Promise.all([
    config && checkDatabase(config, readMasterSecrets(context), clock.now()),
    config && !isOffline ? checkProviders(config, clock) : undefined,
    config ? checkLocalServers(config) : [],
    checkGateway(settings, config),
  ])
  return [
    checkVersion(),
    ...configFindings(loaded, inputs.cwd),
    ...checkDataFolder(config?.dataFolder ?? settings.dataFolder),
    ...(store?.findings ?? []),
    checkClock({ now: clock.now(), dated: providers?.dated, newestRow: store?.newestRow }),
    ...checkProxy(inputs.env),
    ...(providers?.findings ?? []),
    ...local,
    ...gateway,
  ]
}

function configFindings(loaded: ReturnType<typeof loadConfig>, cwd: string): readonly Finding[] {
  const area = 'configuration'
  const warnings = loaded.warnings.map((warning) => note(area, formatFault(warning), 'mend or unset it'))
  if ('faults' in loaded) {
    return [...loaded.faults.map((fault) => wrong(area, formatFault(fault), adviceFor(fault))), ...warnings]
  }
  return [ok(area, fileText(loaded.config, cwd)), ...warnings]
}

function adviceFor({ isMissingHere }: ConfigFault): string {
  return isMissingHere ? 'set it where the gateway is started; here too, to check the rest' : 'mend it there'
}

function fileText({ configPath, configFileExists }: Config, cwd: string): string {
  if (!configFileExists) return 'no file, environment and defaults alone'
  const inside = relative(cwd, configPath)
  return inside.startsWith('..') ? configPath : inside
}
