// OpenRouter's model ids as names here: aliases for the built-in models that have another id, and entries for the ids of a
// list that are not built in. The list is one id per line, or the JSON of `GET https://openrouter.ai/api/v1/models`.

import { z } from 'zod'
import { builtInModels } from '../../catalog/data/built-in.ts'
import { perMillion } from '../../catalog/price-source.ts'
import { Draft } from './draft.ts'

const provider = 'openrouter'
const listSchema = z.object({
  data: z.array(
    z.looseObject({
      id: z.string(),
      name: z.string().optional(),
      context_length: z.number().nullish(),
      pricing: z.looseObject({ prompt: z.string().optional(), completion: z.string().optional() }).nullish(),
    }),
  ),
})

/** `text` absent: every model that is built in. */
export function importOpenrouter(text: string | undefined): Draft {
  const draft = new Draft()
  const byOldId = new Map<string, string>()
  for (const { id, routes } of builtInModels) {
    for (const route of routes) if (route.provider === provider) byOldId.set(route.model, id)
  }
  const ids = new Set(builtInModels.map(({ id }) => id))
  if (text === undefined) {
    for (const [old, id] of byOldId) if (!ids.has(old)) draft.alias(old, id)
    return draft
  }
  const listed = text.trimStart().startsWith('{')
    ? listSchema.parse(JSON.parse(text)).data
    : text
        .split(/\s+/)
        .flatMap((id) => (id === '' ? [] : [{ id, name: undefined, context_length: null, pricing: null }]))
  for (const { id: asked, name, context_length, pricing } of listed) {
    const id = asked.replace(/:(nitro|floor|online)$/, '')
    if (ids.has(id)) continue
    const known = byOldId.get(id)
    if (known !== undefined) draft.alias(id, known)
    else {
      draft.needs('OPENROUTER_API_KEY')
      const [input, output] = [perMillion(pricing?.prompt), perMillion(pricing?.completion)]
      const isFree = Number(input) === 0 && Number(output) === 0
      const price = input !== undefined &&
        output !== undefined && { price: isFree ? ('free' as const) : { input, output } }
      const facts = { ...(name && { name }), ...(context_length && { context_tokens: context_length }), ...price }
      draft.route(id, { provider, model: id }, facts)
    }
  }
  return draft
}
