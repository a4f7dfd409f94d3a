// What a configuration that is wrong elsewhere still says of where its gateway listens and keeps its data. A running
// gateway keeps the last good file, so a command should find it; nothing else is taken from a wrong file.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseDocument } from 'yaml'
import type { Config, ConfigInputs } from './config.ts'
import { type ConfigFault, valueAt } from './fault.ts'
import { variable } from './references.ts'
import { serverSchema } from './schema.ts'
import { readVariables, serverVariables } from './variables.ts'

export type GatewayPlace = Pick<Config, 'host' | 'port' | 'dataFolder'>

/**
 * undefined = one of the faults is in the place itself. Where the gateway is `not called`, the data folder is worked on
 * unasked, so it is not guessed from a file that cannot be read to its end.
 */
export function readGatewayPlace(
  inputs: ConfigInputs,
  faults: readonly ConfigFault[],
  gateway: 'called' | 'not called',
): GatewayPlace | undefined {
  if (faults.some(isOfPlace)) return undefined
  const isUnreadable = faults.some(({ field }) => field === '')
  if (isUnreadable && gateway === 'not called' && variable(inputs.env, 'TOLLGATE_DATA') === undefined) return undefined
  const section = readServerSection(inputs)
  const { host, port, data } = serverSchema.shape
  const { server } = readVariables(inputs.env, [])
  return {
    host: server.host ?? host.catch(undefined).parse(section.host) ?? '127.0.0.1',
    port: server.port ?? port.catch(undefined).parse(section.port) ?? 8080,
    dataFolder: resolve(inputs.cwd, server.data ?? data.catch(undefined).parse(section.data) ?? 'data'),
  }
}

/** Also a key of `server` that nobody knows: it may be one of these, misspelt. */
function isOfPlace({ field }: ConfigFault): boolean {
  const { host, port, data, ...others } = serverVariables
  if ([host, port, data, 'DATABASE_URL'].includes(field)) return true
  return /^server\b/.test(field) && !Object.keys(others).includes(field.slice('server.'.length))
}

/** As far as it can be read: a file that is no YAML further down still says where the gateway is further up. */
function readServerSection({ env, cwd, readFile }: ConfigInputs): Readonly<Record<string, unknown>> {
  const path = resolve(cwd, variable(env, 'TOLLGATE_CONFIG') ?? 'tollgate.yaml')
  try {
    const text = (readFile ?? ((file: string) => readFileSync(file, 'utf8')))(path)
    const section = valueAt(parseDocument(text, { prettyErrors: false, stringKeys: true }).toJS(), ['server'])
    return typeof section === 'object' && section !== null ? { ...section } : {}
  } catch {
    return {}
  }
}
