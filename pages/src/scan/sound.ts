/** Two sounds, for whoever switches them on: high and short is yes, low and long is no. */

const YES = { hertz: 1_175, seconds: 0.12 };
const NO = { hertz: 196, seconds: 0.5 };
const VOLUME = 0.25;

let context: AudioContext | null = null;

/** Plays the sound of an outcome. A browser without sound stays silent. */
export function play(isGood: boolean): void {
  try {
    context ??= new AudioContext();
    const { hertz, seconds } = isGood ? YES : NO;
    const [tone, volume] = [context.createOscillator(), context.createGain()];
    tone.frequency.value = hertz;
    volume.gain.value = VOLUME;
    tone.connect(volume).connect(context.destination);
    tone.start();
    tone.stop(context.currentTime + seconds);
  } catch {
    // The outcome is written and announced all the same.
  }
}
