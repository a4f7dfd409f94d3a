// The master secrets as the gateway of these settings has them, for commands that work on its database. It reads; a
// secret that is missing is never made here.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, loadConfig } from '../config/config.ts'
import { formatFault } from '../config/fault.ts'
import { Secret } from '../kernel/secret.ts'
import { StartRefusal } from '../store/start-refusal.ts'
import { type MasterSecret, parseMasterSecret } from '../tenancy/secrets.ts'
import type { CommandContext } from './command.ts'
import { exitCodes, Refusal } from './refusal.ts'

export interface MasterSecrets {
  readonly config: Config
  readonly current: MasterSecret
  /** Set while a rotation is under way. */
  readonly previous: MasterSecret | undefined
}

export function readMasterSecrets({ inputs }: CommandContext): MasterSecrets | Refusal {
  const loaded = loadConfig(inputs)
  if ('faults' in loaded) {
    const lines = loaded.faults.map((fault) => `\n  ${formatFault(fault)}`).join('')
    return new Refusal(exitCodes.failed, `the configuration is wrong:${lines}`, 'tollgate doctor')
  }
  const { config } = loaded
  try {
    const { secret, secretPrevious } = config
    return {
      config,
      current: secret ? parseMasterSecret(secret, 'TOLLGATE_SECRET') : readSecretFile(config.dataFolder),
      previous: secretPrevious && parseMasterSecret(secretPrevious, 'TOLLGATE_SECRET_PREVIOUS'),
    }
  } catch (thrown) {
    if (!(thrown instanceof StartRefusal)) throw thrown
    return new Refusal(exitCodes.failed, thrown.message, 'tollgate secrets rotate --help')
  }
}

function readSecretFile(dataFolder: string): MasterSecret {
  const file = join(dataFolder, 'secret')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new StartRefusal(`TOLLGATE_SECRET is not set, and ${file} cannot be read.`)
  }
  return parseMasterSecret(new Secret(text), file)
}
