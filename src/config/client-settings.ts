// Where the command line finds its gateway: the address, the management token and the folders, from the same environment
// and file the gateway itself is started with. It reads and decides; it connects to nothing.

import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Secret } from '../kernel/secret.ts'
import { type ConfigInputs, loadConfig } from './config.ts'
import type { ConfigFault } from './fault.ts'
import { type GatewayPlace, readGatewayPlace } from './gateway-place.ts'
import { readNotedAddress } from './noted-address.ts'
import { type Environment, travelsInHeader, variable } from './references.ts'

export interface ClientSettings {
  /** The gateway's root, without a slash at the end. */
  readonly url: string
  /** undefined = none was found; `tokenAbsence` says where it was looked for. */
  readonly token: Secret | undefined
  readonly tokenAbsence: string
  /** A key that clients are to use, TOLLGATE_KEY. */
  readonly apiKey: Secret | undefined
  /** Absolute. */
  readonly dataFolder: string
  /** undefined = the embedded database in the data folder. */
  readonly databaseUrl: Secret | undefined
  /** Where programs of this user keep their settings. */
  readonly homeFolder: string
  readonly configFolder: string
  /** undefined = where Claude Code looks by itself. */
  readonly claudeFolder: string | undefined
  /** False under NO_COLOR, or on a terminal that has none. */
  readonly allowsColor: boolean
  /** What is wrong with settings that only tell where the gateway is; it may run on with the last good ones. */
  readonly doubts: readonly ConfigFault[]
}

/** Faults of settings that would have said where the gateway listens. */
export interface RefusedClientSettings {
  readonly faults: readonly ConfigFault[]
}

/** `not called`: for what works on the database alone; a port that nobody knows is then no fault. */
export function readClientSettings(
  inputs: ConfigInputs,
  gateway: 'called' | 'not called' = 'called',
): ClientSettings | RefusedClientSettings {
  const { env, cwd } = inputs
  const given = variable(env, 'TOLLGATE_URL')
  const loaded = loadConfig(inputs)
  // With an address of its own the command needs no file, and a gateway elsewhere does not care about this one.
  const faults = 'faults' in loaded ? loaded.faults : []
  const place = 'faults' in loaded ? readGatewayPlace(inputs, faults, gateway) : loaded.config
  if (place === undefined && given === undefined) return { faults }
  const dataFolder = place?.dataFolder ?? resolve(cwd, variable(env, 'TOLLGATE_DATA') ?? 'data')
  const address = given === undefined ? listenAddress(env, place, dataFolder, gateway) : givenAddress(given)
  if ('fault' in address) return { faults: [address.fault] }

  const databaseUrl = variable(env, 'DATABASE_URL')
  const homeFolder = variable(env, 'HOME') ?? homedir()
  return {
    url: address.url,
    ...findToken(env, dataFolder, new URL(address.url)),
    apiKey: secretVariable(env, 'TOLLGATE_KEY'),
    dataFolder,
    databaseUrl: databaseUrl === undefined ? undefined : new Secret(databaseUrl),
    homeFolder,
    configFolder: variable(env, 'XDG_CONFIG_HOME') ?? join(homeFolder, '.config'),
    claudeFolder: variable(env, 'CLAUDE_CONFIG_DIR'),
    allowsColor: variable(env, 'NO_COLOR') === undefined && variable(env, 'TERM') !== 'dumb',
    doubts: given === undefined ? faults : [],
  }
}

type Address = { readonly url: string } | { readonly fault: ConfigFault }

/** People paste what they gave an SDK, so a path that ends in /v1 means the root above it. */
function givenAddress(text: string): Address {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username + url.search + url.hash !== '') {
    return addressFault('TOLLGATE_URL', 'expected an address such as http://127.0.0.1:8080')
  }
  return { url: `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}` }
}

/** Where this environment says that the gateway is; otherwise where it says so itself, and only then as configured. */
function listenAddress(
  env: Environment,
  place: GatewayPlace | undefined,
  dataFolder: string,
  gateway: 'called' | 'not called',
): Address {
  const isSaid = variable(env, 'TOLLGATE_HOST') !== undefined || variable(env, 'TOLLGATE_PORT') !== undefined
  // Any free port says nothing.
  const noted = isSaid && place?.port !== 0 ? undefined : readNotedAddress(dataFolder)
  if (noted) return reachedAt(noted.hostname.replace(/^\[|\]$/g, ''), Number(noted.port || 80))
  const { host, port } = place ?? { host: '127.0.0.1', port: 8080 }
  if (port === 0 && gateway === 'called')
    return addressFault('TOLLGATE_PORT', 'is 0, any free port; set TOLLGATE_URL to what the gateway printed')
  return reachedAt(host, port)
}

/** What listens on every address is reached at the loopback one. */
function reachedAt(host: string, port: number): Address {
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return { url: `http://${reached.includes(':') ? `[${reached}]` : reached}:${port}` }
}

function addressFault(field: string, message: string): Address {
  return { fault: { where: 'environment', field, message } }
}

/** The file's token belongs to the gateway of this machine; it is not sent to another one. */
function findToken(env: Environment, dataFolder: string, url: URL): Pick<ClientSettings, 'token' | 'tokenAbsence'> {
  const set = secretVariable(env, 'TOLLGATE_ADMIN_TOKEN')
  if (set !== undefined) return { token: set, tokenAbsence: '' }
  if (!isThisMachine(url.hostname)) {
    return { token: undefined, tokenAbsence: `TOLLGATE_ADMIN_TOKEN is not set, and ${url.host} is not this machine` }
  }
  const file = join(dataFolder, 'admin-token')
  try {
    const text = readFileSync(file, 'utf8').trim()
    if (text !== '' && travelsInHeader(text)) return { token: new Secret(text), tokenAbsence: '' }
    return { token: undefined, tokenAbsence: `${file} holds no token` }
  } catch {
    return { token: undefined, tokenAbsence: `TOLLGATE_ADMIN_TOKEN is not set, and ${file} cannot be read` }
  }
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127\.[0-9.]+$/.test(host)
}

/** What cannot be sent in a header counts as not set; the gateway itself says more about it. */
function secretVariable(env: Environment, name: string): Secret | undefined {
  const value = variable(env, name)
  return value !== undefined && travelsInHeader(value) ? new Secret(value) : undefined
}
