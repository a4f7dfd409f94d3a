/** @jsxImportSource preact */
// How long ago something was; the moment itself stands in its title, in the viewer's zone.

import { useZone } from '../parts/zone.tsx'
import { shownDistance } from './shown-values.ts'

export function Ago({ at }: { readonly at: string }) {
  const { moment, name } = useZone()
  return (
    <time dateTime={at} title={`${moment(at)} ${name}`}>
      {shownDistance(at)}
    </time>
  )
}
