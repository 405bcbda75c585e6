/** A picture of an event. Its place is kept until it comes, so that nothing moves. */
import "./picture.css";
import { pictureAddress } from "../shared/event.ts";

interface PictureProps {
  readonly picture: { readonly sha256: string; readonly width: number; readonly height: number };
  /** Where it is, if not behind the API yet. */
  readonly address?: string | undefined;
  /** What it shows; empty where its title stands beside it. */
  readonly alt: string;
  /** True where it is seen at once. */
  readonly isFirst?: boolean;
}

/** The picture. */
export function EventPicture({ picture: { sha256, width, height }, address = pictureAddress(sha256), alt, isFirst = false }: PictureProps) {
  return (
    <img class="picture" src={address} alt={alt} width={width} height={height}
      loading={isFirst ? "eager" : "lazy"} decoding="async" {...(isFirst ? { fetchpriority: "high" as const } : {})} />
  );
}
