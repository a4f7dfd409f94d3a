// The runtime sends calls through a proxy by itself, where one of these is set; we only know of it.

import { type Environment, variable } from './references.ts'

const proxyVariables = ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy']

export function setProxyVariables(env: Environment): readonly string[] {
  return proxyVariables.filter((name) => variable(env, name) !== undefined)
}
