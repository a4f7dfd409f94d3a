// What to say of a model that is not on offer: one that comes with the gateway needs a provider to be switched on, and
// the variable that does it is known.

import { builtInModels } from '../catalog/data/built-in.ts'
import { builtInProviders } from '../providers/registry.ts'
import type { ApiClient } from './api-client.ts'
import { objectsOf, shownAt } from './json-members.ts'
import { exitCodes, Refusal } from './refusal.ts'

export async function missingModel(api: ApiClient, id: string): Promise<Refusal> {
  const ways = (await switchesOf(api, id)) ?? []
  const [first] = ways
  if (first === undefined)
    return new Refusal(exitCodes.notFound, `there is no model ${id} on offer.`, 'tollgate models')
  const words = ways.map(({ provider, variables }) => `${variables.join(' and ')} (${provider})`).join(', or ')
  const what = `${id} is built in, but no provider of it is switched on. Start the gateway with ${words}.`
  return new Refusal(exitCodes.notFound, what, `${first.variables.map((name) => `${name}=…`).join(' ')} npm start`)
}

interface Switch {
  readonly provider: string
  readonly variables: readonly string[]
}

/** In the order of the model's routes; undefined where that is not the reason. */
async function switchesOf(api: ApiClient, id: string): Promise<readonly Switch[] | undefined> {
  const model = builtInModels.find((each) => each.id === id)
  if (model === undefined) return undefined
  const providers = await api.call({ path: '/api/providers' })
  if (providers instanceof Refusal) return undefined
  const on = new Set(objectsOf(providers.data).map((each) => shownAt(each, 'id')))
  const wanted = [...new Set(model.routes.map(({ provider }) => provider))]
  if (wanted.some((provider) => on.has(provider))) return undefined
  return wanted.flatMap((provider) => {
    const data = builtInProviders.find((each) => each.id === provider)
    return data === undefined ? [] : [{ provider, variables: [data.variable, ...(data.needs ?? [])] }]
  })
}
